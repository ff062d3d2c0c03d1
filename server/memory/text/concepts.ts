/**
 * A small table of everyday concepts in English and Chinese: words of one line mean nearly the same. It lets a question in one
 * language, or in other words, find a memory without any model. One concept a line, words separated by spaces.
 */
import { stem } from "./normalise.ts";

const table = `
dog puppy 狗 小狗 狗狗 犬
cat kitten 猫 小猫 猫咪
pet 宠物
wife spouse husband 妻子 老婆 太太 丈夫 老公 爱人
mother mom mum mama 妈妈 母亲 妈 娘
father dad papa 爸爸 父亲 爸
parents 父母 爸妈
sister 姐姐 妹妹 姐妹
brother 哥哥 弟弟 兄弟
son 儿子
daughter 女儿
child kid children baby 孩子 小孩 宝宝 娃
grandmother grandma 奶奶 外婆 姥姥
grandfather grandpa 爷爷 外公 姥爷
family 家人 家庭
friend buddy 朋友 好友
colleague coworker teammate 同事
boss manager supervisor 老板 上司 经理 领导
customer client 客户 顾客
doctor physician 医生 大夫
hospital clinic 医院 诊所
dentist teeth tooth dental 牙医 牙 牙齿 牙疼 口腔 口腔科
medicine medication drug pill prescription 药 药物 吃药 药品
allergy allergic intolerant 过敏 不耐受
illness sick ill disease 生病 病 不舒服
surgery operation 手术
pain hurt ache 疼 痛 疼痛
blood 血 血压 血型
sleep insomnia nap asleep 睡觉 睡眠 失眠
exercise workout gym fitness 锻炼 健身 运动
run jog marathon 跑步 马拉松 慢跑
walk stroll step steps 走路 散步 步行 走 步 步数
swim 游泳
hike hiking trek 爬山 登山 徒步
bicycle bike cycling cyclist 自行车 单车 骑车 骑行
yoga 瑜伽
football soccer 足球
basketball 篮球
tennis 网球
badminton 羽毛球
game gaming 游戏
music song album 音乐 歌 歌曲
concert gig 演唱会 音乐会
guitar 吉他
instrument cello violin guitar piano drum drums flute saxophone trumpet harp 乐器 大提琴 小提琴 吉他 钢琴 鼓 笛子 古筝 二胡
piano 钢琴
movie film cinema 电影 影片
book novel 书 小说 书籍
author writer 作者 作家
paint painting draw drawing art sketch 画画 绘画 画 艺术
painted wallpaint varnish 漆 油漆 刷漆 粉刷 涂料 刷
photo photograph picture camera 照片 拍照 摄影 相机
cook cooking recipe dish 做饭 做菜 烹饪 菜谱 菜
eat food meal 吃 食物 吃饭
breakfast 早餐 早饭
lunch 午餐 午饭
dinner supper 晚餐 晚饭
restaurant cafe diner 餐厅 饭店 餐馆 馆子
coffee espresso latte 咖啡 拿铁
tea 茶 喝茶
drink beverage 喝 饮料
beer wine alcohol liquor 酒 啤酒 红酒 白酒 喝酒
spicy chili 辣 辣椒
sweet dessert cake sugar 甜 甜点 蛋糕 甜品 糖
vegetarian vegan 素食 吃素
meat beef pork 肉 牛肉 猪肉
fish seafood shrimp 鱼 海鲜 虾
peanut nut 花生 坚果
fruit apple 水果 苹果
milk dairy 牛奶 奶
cilantro coriander 香菜
house home apartment flat 家 房子 公寓 住处
renovation renovate remodel refurbish 装修 翻新 改造
room bedroom living-room lounge 房间 卧室 客厅 书房
wall ceiling 墙 墙面 天花板
live reside residence address moved 住 居住 地址 住址 住在 搬到 搬去
rent lease landlord 租 房租 租房 房东 租金
move relocate 搬家 搬 搬到
city town 城市
country nation 国家
work job career employment occupation profession 工作 职业 上班 岗位
company employer firm startup business corporation founded 公司 企业 单位 集团 创业
office 办公室
salary wage pay income 工资 薪水 收入 薪资
bonus 奖金
interview 面试
resign quit 辞职 离职 跳槽
join joined 加入 入职 跳槽
hire recruit 招聘 雇
meeting conference 会议 开会 会
deadline due 截止 截止日期 期限
project 项目 工程
plan schedule 计划 安排 打算
appointment reservation booking reserve book 预约 预定 预订
contract agreement 合同 协议
budget cost price expense quote fee 预算 费用 价格 花费 价钱 报价 多少钱
money cash 钱 现金
bank account 银行 账户
loan mortgage debt 贷款 房贷 欠款 债
invoice bill receipt 发票 账单 收据
tax 税 税务 报税
insurance 保险
buy purchase shop shopping 买 购买 购物 采购
sell sale 卖 出售
gift present 礼物 礼品
birthday birth born 生日 出生
anniversary 纪念日 周年
wedding marry married wed 结婚 婚礼
engaged engagement propose fiance 订婚 求婚 未婚
divorce 离婚
pregnant pregnancy 怀孕
party celebrate celebration 聚会 派对 庆祝
holiday vacation 假期 度假 放假
travel trip journey tour visit 旅行 旅游 出差 游玩
flight plane airplane fly airline 飞机 航班 飞
airport 机场
train railway 火车 高铁
station 车站 地铁站
subway metro 地铁
car vehicle drive driving 车 汽车 开车
license licence 驾照 执照 许可
passport visa 护照 签证
hotel 酒店 宾馆 旅馆
beach sea seaside shore coast ocean 海滩 海边 大海 沙滩 海岸
mountain 山 山区
park 公园
garden plant flower gardening 花园 植物 花 种花
tree forest 树 森林
weather 天气
rain rainy 雨 下雨
snow 雪 下雪
cold 冷 寒冷
hot warm 热 炎热
school 学校
university college 大学
teacher professor tutor 老师 教授
student pupil 学生
class course lesson 课 课程 上课
exam test quiz 考试 测验
study learn learning 学习 学
graduate graduation degree 毕业 学位
language 语言
english 英语 英文
chinese mandarin 中文 汉语 普通话
japanese japan 日语 日本
french france 法语 法国
german germany 德语 德国
spanish spain 西班牙语 西班牙
korean korea 韩语 韩国
america usa american 美国
britain uk england british 英国
china 中国
beijing 北京
shanghai 上海
shenzhen 深圳
guangzhou 广州
hangzhou 杭州
chengdu 成都
hongkong 香港
taipei taiwan 台北 台湾
tokyo 东京
paris 巴黎
london 伦敦
berlin 柏林
singapore 新加坡
newyork 纽约
computer laptop pc 电脑 笔记本 计算机
phone mobile smartphone cellphone iphone android 手机 电话 手机号
screen display monitor 屏幕 显示器 屏
call called rang 打电话 来电 通话
number 号码 编号 手机号 账号 卡号 新号码
email mail 邮件 邮箱 电子邮件
password passcode pin 密码
wifi wireless 无线 无线网
internet network 网络 互联网
server 服务器
database postgresql postgres mysql mongodb sqlite oracle redis 数据库
backup 备份
code program programming software 代码 编程 程序 软件
bug error fault 错误 故障 问题
release deploy launch publish ship 发布 上线 部署 发布时间 发版
version 版本
website site 网站
robot 机器人
key 钥匙
door 门
color colour shade 颜色 色 红色 蓝色 绿色 黑色 白色 黄色 灰色 紫色 red blue green black white yellow grey gray purple
red 红色 红
blue 蓝色 蓝
green 绿色 绿
black 黑色 黑
white 白色 白
favorite favourite prefer like love fond enjoy 喜欢 最爱 喜爱 爱 爱好 偏好
hate dislike 讨厌 不喜欢
hobby interest pastime 爱好 兴趣
afraid scared fear phobia 害怕 怕 恐惧
happy glad joy 开心 高兴 快乐
sad upset 难过 伤心
angry 生气 愤怒
worry worried anxious anxiety stress 担心 焦虑 压力
tired exhausted 累 疲惫
decide decision choose choice pick select settle 决定 选择 选定 敲定 定在 选
promise commit 答应 承诺 保证
agree 同意
argue quarrel fight 吵架 争吵
help assist 帮助 帮忙
lend borrow 借
lose lost missing 丢 丢失 弄丢 不见
find 找到 发现
break broken damage 坏 坏了 弄坏
repair fix mend 修 修理 维修 换屏 检修
clean 打扫 清洁 干净
wash laundry 洗 洗衣
clothes shirt dress 衣服 衬衫 裙子
shoe shoes sneakers boots 鞋 鞋子 运动鞋
size 尺码 大小 码
glasses 眼镜
jewellery jewelry necklace ring bracelet earring 首饰 项链 戒指 手镯 耳环
watch 手表
umbrella 伞 雨伞
bag backpack suitcase luggage 包 背包 行李 箱子
package parcel delivery courier 包裹 快递
store shop supermarket market 商店 超市 店 市场
neighbor neighbour 邻居
police 警察
lawyer attorney 律师
volunteer charity donate fundraiser 志愿 志愿者 慈善 捐款 募捐
religion church 宗教 教堂
morning 早上 上午 早晨
afternoon 下午
evening night 晚上 夜里 夜晚
today 今天
tomorrow 明天
yesterday 昨天
week 周 星期
weekend 周末
monday 周一 星期一
tuesday 周二 星期二
wednesday 周三 星期三
thursday 周四 星期四
friday 周五 星期五
saturday 周六 星期六
sunday 周日 星期日 星期天
month 月份
spring 春天
summer 夏天
autumn fall 秋天
winter 冬天
start begin 开始
finish end complete 结束 完成
cancel 取消
postpone delay late overdue 推迟 延期 延迟 晚点 逾期
change 改 改变 更改
new 新
old 旧
age years 岁 年龄
tall height 身高 高
weight kg 体重
nickname 外号 昵称 绰号
goal aim target 目标
dream 梦想 梦
language 语言
team 团队 小组 队
leader head 负责人 组长
supplier vendor 供应商 供货商
delivery deliver shipment 交货 发货 送货 交付
order 订单
warehouse 仓库
report 报告
presentation slides 演讲 演示 幻灯片
quiet silence 安静
noise noisy loud 吵 噪音
fire 火 火灾
famous celebrity star 明星 名人
keep keeper guard watch 看管 照看 照顾 care nurse babysit
water 水
electricity power 电 电费
gas 燃气 煤气
furniture sofa table chair bed 家具 沙发 桌子 椅子 床
kitchen 厨房
bathroom toilet 厕所 浴室 卫生间
therapy therapist counselor counseling psychologist 心理咨询 咨询师 心理医生
adopt adoption 领养 收养
camp camping 露营 野营
museum gallery exhibition 博物馆 展览 画廊
dance dancing 跳舞 舞蹈
pottery ceramics 陶艺 陶瓷
chess 象棋 国际象棋 棋 围棋
podcast 播客
subscription subscribe member membership 订阅 会员
discount 打折 折扣 优惠
refund 退款 退货
accident crash 事故 车祸
parking park 停车 停车位 车位
`;

function build(): Map<string, string[]> {
	const concepts = new Map<string, string[]>();
	let number = 0;
	for (const line of table.trim().split("\n")) {
		const id = `xc${number++}`;
		for (const word of line.split(" ")) {
			const key = /^[a-z]+$/.test(word) ? stem(word) : word;
			const known = concepts.get(key) ?? [];
			if (!known.includes(id)) known.push(id);
			concepts.set(key, known);
		}
	}
	return concepts;
}

let concepts: Map<string, string[]> | null = null;

/** Concept marks of a stemmed or Chinese word; empty for a word that is not in the table. */
export function conceptsOf(word: string): readonly string[] {
	concepts ??= build();
	return concepts.get(word) ?? [];
}
